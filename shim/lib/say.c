/* One line on standard error, without stdio. */
#define _GNU_SOURCE
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void say(const char *format, ...) {
	static const char prefix[] = "volcano-py: ";
	const int kept = errno;
	char line[512];
	memcpy(line, prefix, sizeof(prefix));
	va_list arguments;
	va_start(arguments, format);
	const size_t room = sizeof(line) - sizeof(prefix) - 1;
	const int wanted = vsnprintf(line + sizeof(prefix) - 1, room, format, arguments);
	va_end(arguments);
	const size_t said = wanted < 0 ? 0 : (size_t)wanted >= room ? room - 1 : (size_t)wanted;
	const size_t length = sizeof(prefix) - 1 + said;
	line[length] = '\n';
	if (write(STDERR_FILENO, line, length + 1) < 0) {
		/* Nobody listens, and there is nobody else to tell. */
	}
	errno = kept;
}
