// Standard output and standard error, with failed writes as errors (a full disk must not look like
// success). One owner: the main thread.
#pragma once

#include <string_view>

#include "base/error.h"

namespace sluice {

// Writes all of `text` to standard output at once; kIo says why it could not.
Status write_out(std::string_view text);

// "sluice: <text>" as one line on standard error: what went wrong, or what the user should know.
void print_note(std::string_view text);

}  // namespace sluice
