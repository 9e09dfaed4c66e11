/* Replaces programs/server/tls.c in the wheel, whose server has no TLS: GnuTLS and its libraries are not installed everywhere,
 * and cannot be linked statically. */
#include "server/tls.h"

#include <stddef.h>

#include "server/state.h"

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
