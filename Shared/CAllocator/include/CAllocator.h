// Which allocator a program uses, and the settings of jemalloc.

#ifndef HATO_ALLOCATOR_H
#define HATO_ALLOCATOR_H

// "jemalloc", or "libc" for that of the system.
const char *hato_allocator_name(void);

#endif
