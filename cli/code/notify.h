/* SPDX-License-Identifier: BSD-2-Clause */
/* Telling a service manager how a service is, as sd_notify(3) does. */
#ifndef CLI_NOTIFY_H
#define CLI_NOTIFY_H

/*
 * notify - send a line such as "READY=1" to the socket that NOTIFY_SOCKET names
 *
 * Nothing happens without one: nobody waits then. The protocol is one datagram, which is less than
 * a library would be.
 */
void notify(const char *state);

#endif
