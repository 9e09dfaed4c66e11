/* The certificate of the server and its key. Only this file uses GnuTLS.
 *
 * Each handshake gets its own copies, so that the certificate can be replaced at any time. Parsing the PEM texts takes a tenth
 * of the time of a handshake.
 */
#include "server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/state.h"

enum { PEM_BYTES_MAX = 1 << 20, CHAIN_MAX = 16 };

/* Reads a PEM file as text. */
static ww_status read_pem(const char *path, char **text)
{
    ww_status status = WW_OK;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return ww_fail_errno(WW_IO_ERROR, errno, "%s", path);
    char *bytes = memory_alloc(PEM_BYTES_MAX);
    const ssize_t length = bytes ? read(file, bytes, PEM_BYTES_MAX - 1) : 0;
    if (!bytes)
        status = memory_failed("a certificate", PEM_BYTES_MAX);
    else if (length <= 0)
        status = length < 0 ? ww_fail_errno(WW_IO_ERROR, errno, "%s", path) : ww_fail(WW_INVALID_ARGUMENT, "%s is empty", path);
    close(file);
    if (status != WW_OK) {
        memory_free(bytes);
        return status;
    }
    bytes[length] = '\0';
    *text = memory_copy_text(bytes, (size_t)length);
    memory_free(bytes);
    return *text ? WW_OK : memory_failed("a certificate", (size_t)length);
}

static gnutls_datum_t datum(char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

/* Checks that both are PEM texts and that the key belongs to the certificate. */
static ww_status check_pair(const server_config *config, char *certificate, char *private_key)
{
    const gnutls_datum_t pair[2] = {datum(certificate), datum(private_key)};
    gnutls_certificate_credentials_t credentials = NULL;
    int code = gnutls_certificate_allocate_credentials(&credentials);
    if (code == GNUTLS_E_SUCCESS)
        code = gnutls_certificate_set_x509_key_mem(credentials, &pair[0], &pair[1], GNUTLS_X509_FMT_PEM);
    if (credentials)
        gnutls_certificate_free_credentials(credentials);
    return code >= 0 ? WW_OK
                     : ww_fail(WW_INVALID_ARGUMENT, "%s and %s must be a certificate and its key in PEM format: %s",
                               config->certificate, config->private_key, gnutls_strerror(code));
}

ww_status tls_load(server *s)
{
    const server_config *config = &s->config;
    char *certificate = NULL, *private_key = NULL;
    if (!config->certificate != !config->private_key)
        return ww_fail(WW_INVALID_ARGUMENT, "--tls-cert and --tls-key belong together");
    if (!config->certificate)
        return WW_OK;
    ww_status status = read_pem(config->certificate, &certificate);
    if (status == WW_OK)
        status = read_pem(config->private_key, &private_key);
    if (status == WW_OK)
        status = check_pair(config, certificate, private_key);
    if (status == WW_OK) {
        pthread_mutex_lock(&s->lock);
        char *const old[2] = {s->certificate, s->private_key};
        s->certificate = certificate;
        s->private_key = private_key;
        pthread_mutex_unlock(&s->lock);
        certificate = old[0];
        private_key = old[1];
    }
    memory_free(certificate);
    memory_free(private_key);
    return status;
}

void tls_free(server *s)
{
    memory_free(s->certificate);
    memory_free(s->private_key);
    s->certificate = s->private_key = NULL;
}

/* Copies the current texts. */
static bool copy_pair(server *s, char *pair[2])
{
    pthread_mutex_lock(&s->lock);
    pair[0] = memory_copy_text(s->certificate, strlen(s->certificate));
    pair[1] = memory_copy_text(s->private_key, strlen(s->private_key));
    pthread_mutex_unlock(&s->lock);
    return pair[0] && pair[1];
}

/* Imports the chain and the key. GnuTLS frees them after the handshake with its own functions, so its own functions must
 * allocate them. */
static int import_pair(char *const pair[2], gnutls_pcert_st **chain, unsigned *chain_length, gnutls_privkey_t *key)
{
    const gnutls_datum_t certificate = datum(pair[0]), private_key = datum(pair[1]);
    gnutls_privkey_t made = NULL;
    unsigned count = CHAIN_MAX;
    gnutls_pcert_st *list = gnutls_malloc(CHAIN_MAX * sizeof *list);
    int code = list ? gnutls_privkey_init(&made) : GNUTLS_E_MEMORY_ERROR;
    if (code == GNUTLS_E_SUCCESS)
        code = gnutls_privkey_import_x509_raw(made, &private_key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code == GNUTLS_E_SUCCESS)
        code = gnutls_pcert_list_import_x509_raw(list, &count, &certificate, GNUTLS_X509_FMT_PEM, 0);
    if (code != GNUTLS_E_SUCCESS) {
        if (made)
            gnutls_privkey_deinit(made);
        gnutls_free(list);
        return code;
    }
    *chain = list;
    *chain_length = count;
    *key = made;
    return code;
}

/* GnuTLS's own list of parameters. libmicrohttpd makes its connection the session's pointer. */
static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
                    unsigned *chain_length, gnutls_ocsp_data_st **ocsp, unsigned *ocsp_length, gnutls_privkey_t *key,
                    unsigned *flags)
{
    struct MHD_Connection *connection = gnutls_session_get_ptr(session);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const client *c = info ? info->socket_context : NULL;
    char *pair[2] = {NULL, NULL};
    (void)asked;
    *ocsp = NULL;
    *ocsp_length = 0;
    *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
    const int code = c && copy_pair(c->server, pair) ? import_pair(pair, chain, chain_length, key) : GNUTLS_E_MEMORY_ERROR;
    memory_free(pair[0]);
    memory_free(pair[1]);
    return code == GNUTLS_E_SUCCESS ? 0 : -1;
}

tls_callback tls_certificate_callback(void)
{
    return (tls_callback)retrieve;
}
