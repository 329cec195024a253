/* SPDX-License-Identifier: Apache-2.0 */
/* web_objects: what arrives at web-client: the bytes of objects, checked; an object is reported when it is
 * whole. */
#ifndef NETWARP_WEB_OBJECTS_H
#define NETWARP_WEB_OBJECTS_H

#include "web_requests.h"

#define WEB_BUFFER_BYTES 262144 /* of client.buffer */

/* Read all that is there. An object that it completes may be followed by further requests. */
void web_read_objects(struct client *client, struct connection *connection);
void web_forget_objects(struct client *client);

#endif
