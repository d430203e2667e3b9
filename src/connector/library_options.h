/* Options that go on to a client library as they are, where the job is somebody else's (os/confined.h): what names a
 * file may only name one that the job may touch, and what makes the library load or run something is refused. */
#ifndef CK_CONNECTOR_LIBRARY_OPTIONS_H
#define CK_CONNECTOR_LIBRARY_OPTIONS_H

#include "base/proc.h"

/* property: as the library calls it, option: as the table does. CK_REFUSED, fatal. Without confinement all are fine. */
CK_NODISCARD ck_status ck_kafka_property_check(const ck_proc *proc, const char *property, const char *option,
                                               const char *value, ck_error *err);
CK_NODISCARD ck_status ck_pg_property_check(const ck_proc *proc, const char *property, const char *option,
                                            const char *value, ck_error *err);
/* host NULL: none is named. A local socket knows who we are by our user. */
CK_NODISCARD ck_status ck_pg_host_check(const ck_proc *proc, const char *host, ck_error *err);

#endif
