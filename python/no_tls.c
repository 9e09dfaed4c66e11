/* In place of src/server/tls.c in the wheel, whose server has no TLS: GnuTLS and what it needs are not on every machine, and no
 * archives of them are.
 *
 * libmicrohttpd's archive calls GnuTLS for connections with TLS only, of which there are none here; the linker still wants the
 * functions. Its variable for messages has a name of its own here, because an archive for programs may not reach the one of
 * the C library from a shared library (cmake/Python.cmake renames it).
 */
#include <stddef.h>
#include <stdio.h>

#include "server/state.h"
#include "server/tls.h"

ww_status tls_load(server *s)
{
    if (!s->config.certificate && !s->config.private_key)
        return WW_OK;
    return ww_fail(WW_UNSUPPORTED,
                   "--tls-cert and --tls-key: the server of the Python package has no TLS; put a proxy with TLS "
                   "in front of it, or install the Debian package");
}

void tls_free(server *s)
{
    (void)s;
}

tls_callback tls_certificate_callback(void)
{
    return NULL;
}

FILE *wheel_stderr;
void *(*gnutls_malloc)(size_t);

__attribute__((constructor)) static void set_stderr(void)
{
    wheel_stderr = stderr;
}

int gnutls_global_init(void); /* NOLINT: GnuTLS's name */
int gnutls_global_init(void)
{
    return 0;
}

int tls_absent(void);
int tls_absent(void)
{
    return -1250; /* GNUTLS_E_UNIMPLEMENTED_FEATURE */
}

#define ABSENT(name) int name(void) __attribute__((alias("tls_absent")));
ABSENT(gnutls_alpn_set_protocols)
ABSENT(gnutls_bye)
ABSENT(gnutls_certificate_allocate_credentials)
ABSENT(gnutls_certificate_free_credentials)
ABSENT(gnutls_certificate_server_set_request)
ABSENT(gnutls_certificate_set_dh_params)
ABSENT(gnutls_certificate_set_retrieve_function2)
ABSENT(gnutls_certificate_set_retrieve_function3)
ABSENT(gnutls_certificate_set_x509_key_mem)
ABSENT(gnutls_certificate_set_x509_key_mem2)
ABSENT(gnutls_certificate_set_x509_trust_mem)
ABSENT(gnutls_cipher_get)
ABSENT(gnutls_credentials_set)
ABSENT(gnutls_deinit)
ABSENT(gnutls_dh_params_deinit)
ABSENT(gnutls_dh_params_import_pkcs3)
ABSENT(gnutls_dh_params_init)
ABSENT(gnutls_global_deinit)
ABSENT(gnutls_handshake)
ABSENT(gnutls_init)
ABSENT(gnutls_priority_deinit)
ABSENT(gnutls_priority_init)
ABSENT(gnutls_priority_set)
ABSENT(gnutls_protocol_get_version)
ABSENT(gnutls_psk_allocate_server_credentials)
ABSENT(gnutls_psk_free_server_credentials)
ABSENT(gnutls_psk_set_server_credentials_function)
ABSENT(gnutls_record_check_pending)
ABSENT(gnutls_record_get_direction)
ABSENT(gnutls_record_recv)
ABSENT(gnutls_record_send)
ABSENT(gnutls_session_get_ptr)
ABSENT(gnutls_session_set_ptr)
ABSENT(gnutls_strerror)
ABSENT(gnutls_transport_set_int2)
