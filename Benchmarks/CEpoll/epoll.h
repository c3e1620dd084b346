// Linux has it, Swift's Glibc module leaves it out.
#if __has_include(<sys/epoll.h>)
#include <sys/epoll.h>
#endif
