// Release builds for Linux link jemalloc where it is installed (HATO_ALLOCATOR in Package.swift); without it nothing
// reads these settings.
//
// By default jemalloc gives freed pages back after ten seconds, and those of a thread that is idle not at all. A server
// whose memory is limited then holds what it needed at the peaks of all its threads at once.

#include "CAllocator.h"

#include <stddef.h>

const char *malloc_conf = "background_thread:true,max_background_threads:1,dirty_decay_ms:1000";

#ifdef __linux__
extern int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

const char *hato_allocator_name(void) { return mallctl ? "jemalloc" : "libc"; }
#else
const char *hato_allocator_name(void) { return "libc"; }
#endif
