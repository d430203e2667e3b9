/* What other systems call by another name, or have and we have not: what is said instead of "unknown". Only for
 * messages: nothing here is ever taken for what it stands for. */
#ifndef CK_SQL_FOREIGN_H
#define CK_SQL_FOREIGN_H

#include "base/view.h"

typedef enum ck_foreign {
    CK_FOREIGN_FUNCTION,
    CK_FOREIGN_TABLE_FUNCTION,
    CK_FOREIGN_CONNECTOR,
    CK_FOREIGN_OPTION,
    CK_FOREIGN_SETTING,
    CK_FOREIGN_SHOW, /* SHOW word */
    CK_FOREIGN_TYPE,
} ck_foreign;

/* What follows the semicolon of the message: "it is state_ttl here", without a full stop; NULL: a name nobody has. */
const char *ck_foreign_name(ck_foreign kind, ck_view name);

#endif
