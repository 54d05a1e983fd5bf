# The short front of the Meson build. Two commands do everything on a fresh machine: `make demo` and `make test`.
BUILD ?= build
ONLY ?=
FOR ?=
.DEFAULT_GOAL := all
.PHONY: all deps deps-page demo test peers bench asan check format format-check install clean help

all: $(BUILD)/build.ninja ## build the programs: build/tokwatt and build/tokwattd
	@ninja -C $(BUILD)
	@ln -sf app/tokwatt/tokwatt $(BUILD)/tokwatt; ln -sf app/tokwattd/tokwattd $(BUILD)/tokwattd; ln -sf app/tokwatt-capd/tokwatt-capd $(BUILD)/tokwatt-capd

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) --buildtype=release -Db_ndebug=false >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@sed -n '/^Build targets/,$$p' $(BUILD).log; rm -f $(BUILD).log

deps: ## install what is missing (Debian 12/13, Ubuntu 24.04; asks for sudo only when something is missing)
	@tools/deps build

deps-page:
	@tools/deps page || echo "No npm here: the programs are built without the page."

demo: deps-page all ## the main job on a simulated site, with a page; FOR=60 ends it 60 s after the page answers
	@$(BUILD)/tokwatt demo $(if $(FOR),--for $(FOR))

test: ## all tests of the project; ONLY=word picks by name
	@tools/deps test
	@$(MAKE) --no-print-directory all
	@tools/run-tests $(BUILD) $(if $(ONLY),--only $(ONLY))

peers: all ## tests against programs of others, in a pinned Python environment
	@test/peers/run $(BUILD)

bench: all ## all benchmarks, with method and machine printed
	@bench/run $(BUILD)

asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/deps test
	@[ -f $(BUILD)-asan/build.ninja ] || meson setup $(BUILD)-asan --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true
	@ninja -C $(BUILD)-asan && ln -sf app/tokwatt/tokwatt $(BUILD)-asan/tokwatt && ln -sf app/tokwattd/tokwattd $(BUILD)-asan/tokwattd
	@tools/run-tests $(BUILD)-asan $(if $(ONLY),--only $(ONLY))

check: all ## layers, symbols, sources, formatting, clang-tidy
	@tools/check-layers && tools/check-sources && tools/check-symbols $(BUILD)/lib/libtokwatt.a
	@$(MAKE) --no-print-directory format-check
	@tools/tidy $(BUILD)

format: ## rewrite the C files in the project's format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

format-check:
	@git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t14
