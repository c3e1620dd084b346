// The settings of jemalloc, which is linked beside RocksDB where it is installed (scripts/static-libraries); without
// jemalloc nothing reads them.
//
// By default jemalloc gives freed pages back after ten seconds, and those of a thread that is idle not at all. A server
// whose memory is limited then holds what it needed at the peaks of all its threads at once.
extern "C" const char *malloc_conf = "background_thread:true,max_background_threads:1,dirty_decay_ms:1000";
