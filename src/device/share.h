/* One more user of a device that a caller handed over. */
#ifndef WW_DEVICE_SHARE_H
#define WW_DEVICE_SHARE_H

#include <warpwave/device.h>

/* Keeps a device open for one more user, who closes it with ww_device_close(). Returns WW_OTHER_PROCESS in a child of fork().
 */
ww_status device_share(ww_device *device, ww_device **shared);

#endif
