/* Where a coordinator may be: one address, or several with commas between, of which one leads at a time. */
#ifndef CK_CLUSTER_ADDRESSES_H
#define CK_CLUSTER_ADDRESSES_H

#include <stdlib.h>
#include <string.h>

#include "base/view.h"

enum { CK_ADDRESS_BYTES_MAX = 300 };

static inline uint32_t ck_addresses_count(const char *list) {
    uint32_t n = 1;
    for (const char *p = list; (p = strchr(p, ',')) != NULL; p++) n++;
    return n;
}

/* The turn-th, round and round; one that is too long is cut, which makes it nobody's. */
static inline void ck_addresses_at(const char *list, uint32_t turn, char out[CK_ADDRESS_BYTES_MAX]) {
    turn %= ck_addresses_count(list);
    while (turn--) list = strchr(list, ',') + 1;
    size_t n = strcspn(list, ",");
    if (n >= CK_ADDRESS_BYTES_MAX) n = CK_ADDRESS_BYTES_MAX - 1;
    memcpy(out, list, n);
    out[n] = 0;
}

static inline uint16_t ck_address_port(const char *address) {
    const char *colon = strrchr(address, ':');
    return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

#endif
