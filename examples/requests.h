/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of examples/requests know. */
#ifndef REQUESTS_H
#define REQUESTS_H

/* A device, and what is asked of it: REQ_OP_READ and so on. */
struct request_key {
	unsigned int major, minor, operation;
};

#endif
