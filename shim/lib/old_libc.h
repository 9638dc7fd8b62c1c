/* Binds a function to the version that it had in old glibc, so that the library also loads in
 * containers older than the machine that built it. */
#ifndef VPY_OLD_LIBC_H
#define VPY_OLD_LIBC_H

#if defined(__x86_64__)
#define OLD_LIBC(name, amd64) __asm__(".symver " #name "," #name "@GLIBC_" amd64)
#elif defined(__aarch64__)
#define OLD_LIBC(name, amd64) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif

#endif
