# Builds the quota libraries: `make shim`, or `make -f shim/lib/shim.mk` alone. Needs a C compiler and Python only.
# SANITIZE=address,undefined or SANITIZE=thread builds instrumented variants beside the plain ones.

SHIM_CC ?= gcc
SANITIZE ?=
SHIM_PYTHON ?= python3
comma := ,
SHIM_LIB := $(dir $(lastword $(MAKEFILE_LIST)))
SHIM_OUT ?= build/shim$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))

SHIM_SANITIZE := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer)
SHIM_CFLAGS := -std=c11 -O2 -g -fPIC -fvisibility=hidden -fno-plt -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -I$(SHIM_LIB)
SHIM_LDFLAGS := -shared -Wl,-z,now -Wl,-z,relro $(SHIM_SANITIZE) $(if $(SANITIZE),,-Wl,-z,defs)
SHIM_HEADERS := $(wildcard $(SHIM_LIB)*.h)

# These answer lookups before a sanitizer has looked up its own functions.
SHIM_BARE := interpose elf_find driver
# Neither CUDA nor AscendCL: both libraries have them.
SHIM_COMMON := $(addprefix $(SHIM_LIB),charge.c driver.c elf_find.c environment.c guard.c interpose.c objects.c quota.c region.c \
  report.c say.c slice.c slot.c table.c)

.PHONY: shim-libraries
shim-libraries: $(SHIM_OUT)/libvgpu.so $(SHIM_OUT)/libvnpu.so

# $(call library,NAME,SOURCES): lib<NAME>.so of these and of what the list of symbols makes for it.
define library
$(SHIM_OUT)/lib$(1).so: $(patsubst %,$(SHIM_OUT)/$(1)/%.o,$(notdir $(basename $(2))) made_hooks made_names)
	@$(SHIM_CC) $(SHIM_LDFLAGS) -Wl,-soname,lib$(1).so -o $$@.new $$^ -Wl,--no-as-needed -l:libdl.so.2
	@mv $$@.new $$@

$(SHIM_OUT)/$(1)/hooks.h: $(SHIM_LIB)symbols.toml $(SHIM_LIB)generate.py
	@$(SHIM_PYTHON) $(SHIM_LIB)generate.py hooks $(SHIM_OUT)/$(1) $(1)

$(SHIM_OUT)/$(1)/made_%.o: $(SHIM_OUT)/$(1)/hooks.h $(SHIM_HEADERS)
	@$(SHIM_CC) $(SHIM_CFLAGS) $(SHIM_SANITIZE) -I$(SHIM_OUT)/$(1) -c -o $$@ $(SHIM_OUT)/$(1)/$$*.c

$(SHIM_OUT)/$(1)/%.o: $(SHIM_LIB)%.c $(SHIM_OUT)/$(1)/hooks.h $(SHIM_HEADERS)
	@$(SHIM_CC) $(SHIM_CFLAGS) $$(if $$(filter $(SHIM_BARE),$$*),,$(SHIM_SANITIZE)) -I$(SHIM_OUT)/$(1) -c -o $$@ $$<

$(SHIM_OUT)/$(1)/%.o: $(SHIM_LIB)ascend/%.c $(SHIM_OUT)/$(1)/hooks.h $(SHIM_HEADERS)
	@$(SHIM_CC) $(SHIM_CFLAGS) $(SHIM_SANITIZE) -I$(SHIM_OUT)/$(1) -c -o $$@ $$<
endef

$(eval $(call library,vgpu,$(wildcard $(SHIM_LIB)*.c)))
$(eval $(call library,vnpu,$(SHIM_COMMON) $(wildcard $(SHIM_LIB)ascend/*.c)))
