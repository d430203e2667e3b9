/* Intervals as text: "1-02" or "1 year 2 months"; "1 02:03:04.5", "02:03" or "1 day 2 hours". A sign in front counts
 * for the whole. */
#ifndef CK_EXPR_INTERVAL_TEXT_H
#define CK_EXPR_INTERVAL_TEXT_H

#include "base/view.h"

bool ck_parse_months(ck_view v, int64_t *months);
bool ck_parse_interval(ck_view v, int64_t *us);

#endif
