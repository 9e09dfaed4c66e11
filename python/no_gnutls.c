/* The functions of GnuTLS that libmicrohttpd's archive needs to be linked into the wheel's library, which has no GnuTLS. It
 *calls them only for TLS connections, which do not exist here (no_tls.c).
 *
 * The archive was compiled for programs, so that it may not reach variables of other libraries: the stderr of the C library has
 * another name in it (cmake/Python.cmake), which is defined here.
 */
#include <stddef.h>
#include <stdio.h>

__attribute__((visibility("hidden"))) FILE *wheel_stderr;
__attribute__((visibility("hidden"))) void *(*gnutls_malloc)(size_t);

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
