/* SPDX-License-Identifier: Apache-2.0 */
/* api/page.h - the files of the web page, put into the program at build by tools/embed. */
#ifndef TW_API_PAGE_H
#define TW_API_PAGE_H

#include <stddef.h>

struct tw_page_asset {
    const char *path; /* "/" is the page */
    const char *type;
    const char *etag;
    const unsigned char *data;
    size_t n;
};

/* Ends with a row whose path is NULL; nothing else when the page was not built. */
extern const struct tw_page_asset tw_page_asset[];

#endif
