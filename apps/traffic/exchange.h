/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: what an end that sends does while its connection is up: it hands over the payload that is due,
 * and takes what arrives. The sender always, the receiver with --duplex. */
#ifndef NETWARP_EXCHANGE_H
#define NETWARP_EXCHANGE_H

#include "sender_due.h"

/* Report a failure: END_FAILED. */
enum ending exchange_fail(struct sender *sender, const char *what, int error, const char *detail);

/* Take what has arrived: payload, acknowledgements, notifications, the end of the connection. */
enum ending exchange_receive(struct sender *sender);

/* Hand over payload until all of it is with the kernel, the time is over or the peer is gone. */
enum ending exchange_payload(struct sender *sender);

/* After exchange_payload() with END_TOTAL: until --peer-total-bytes have arrived, or the time is over. */
enum ending exchange_await_peer(struct sender *sender);

/* At --stop-ns: take what has arrived by then. END_STOP, or how the flow ended meanwhile. */
enum ending exchange_take_arrived(struct sender *sender);

/* The receiver's last part: until the sender ends the connection. */
enum ending exchange_await_end(struct sender *sender);

/* Close in order: until the peer has closed too, or it cannot. */
enum ending exchange_drain(struct sender *sender);

#endif
