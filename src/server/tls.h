/* The certificate of the server and its key. */
#ifndef WW_SERVER_TLS_H
#define WW_SERVER_TLS_H

#include "server/server.h"

/* Reads the files of the configuration and checks that they belong together; does nothing if it names none. A later call
 * replaces what was read; if it fails the old certificate stays. Connections that exist keep theirs. */
ww_status tls_load(server *s);
void tls_free(server *s);

/* What libmicrohttpd takes for MHD_OPTION_HTTPS_CERT_CALLBACK2. */
typedef void (*tls_callback)(void);
tls_callback tls_certificate_callback(void);

#endif
