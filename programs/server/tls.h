/* The certificate of the server and its key. */
#ifndef WW_SERVER_TLS_H
#define WW_SERVER_TLS_H

#include "server/server.h"

/* Reads the configured files and checks that they belong together; does nothing if there are none. A later call replaces the
 * certificate; if it fails, the old one stays. Existing connections keep theirs. */
ww_status tls_load(server *s);
void tls_free(server *s);

/* The callback for libmicrohttpd's MHD_OPTION_HTTPS_CERT_CALLBACK2. */
typedef void (*tls_callback)(void);
tls_callback tls_certificate_callback(void);

#endif
