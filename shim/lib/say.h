/* Words to people: one line on standard error, and never for what an application does right. */
#ifndef VPY_SAY_H
#define VPY_SAY_H

/* Writes "volcano-py: ..." as one line. Neither allocates nor changes errno. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
