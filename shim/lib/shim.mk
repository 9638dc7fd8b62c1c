# Builds the quota library: `make shim`, or `make -f shim/lib/shim.mk` alone. Needs a C compiler and Python only.
# SANITIZE=address,undefined or SANITIZE=thread builds instrumented variants beside the plain ones.

SHIM_CC ?= gcc
SANITIZE ?=
SHIM_PYTHON ?= python3
SHIM_LIB := $(dir $(lastword $(MAKEFILE_LIST)))
SHIM_OUT ?= build/shim$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))
SHIM_GEN := $(SHIM_OUT)/generated
comma := ,

SHIM_CFLAGS := -std=c11 -O2 -g -fPIC -fvisibility=hidden -fno-plt -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
  -I$(SHIM_LIB) -I$(SHIM_GEN)
SHIM_SANITIZE := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
# These answer lookups before a sanitizer has looked up its own functions.
SHIM_BARE := interpose elf_find driver
SHIM_LDFLAGS := -shared -Wl,-z,now -Wl,-z,relro $(if $(SANITIZE),-fsanitize=$(SANITIZE),-Wl,-z,defs)
SHIM_SOURCES := $(wildcard $(SHIM_LIB)*.c)
SHIM_HEADERS := $(wildcard $(SHIM_LIB)*.h)
SHIM_GENERATED := $(SHIM_GEN)/hooks.c $(SHIM_GEN)/names.c
SHIM_OBJECTS := $(patsubst $(SHIM_LIB)%.c,$(SHIM_OUT)/objects/%.o,$(SHIM_SOURCES)) \
  $(patsubst $(SHIM_GEN)/%.c,$(SHIM_OUT)/objects/generated_%.o,$(SHIM_GENERATED))

.PHONY: shim-libraries
shim-libraries: $(SHIM_OUT)/libvgpu.so

$(SHIM_OUT)/libvgpu.so: $(SHIM_OBJECTS)
	@$(SHIM_CC) $(SHIM_LDFLAGS) -Wl,-soname,libvgpu.so -o $@ $^ -Wl,--no-as-needed -l:libdl.so.2

$(SHIM_GEN)/hooks.h: $(SHIM_LIB)symbols.toml $(SHIM_LIB)generate.py
	@mkdir -p $(SHIM_OUT)/objects
	@$(SHIM_PYTHON) $(SHIM_LIB)generate.py hooks $(SHIM_GEN)

$(SHIM_GENERATED): $(SHIM_GEN)/hooks.h ;

$(SHIM_OUT)/objects/%.o: $(SHIM_LIB)%.c $(SHIM_HEADERS) $(SHIM_GEN)/hooks.h
	@$(SHIM_CC) $(SHIM_CFLAGS) $(if $(filter $(SHIM_BARE),$*),,$(SHIM_SANITIZE)) -c -o $@ $<

$(SHIM_OUT)/objects/generated_%.o: $(SHIM_GEN)/%.c $(SHIM_HEADERS) $(SHIM_GEN)/hooks.h
	@$(SHIM_CC) $(SHIM_CFLAGS) $(SHIM_SANITIZE) -c -o $@ $<
