// Errors of the world as values (Result, Status), and bugs as aborts (CHECK).
// A Result is returned at once and passed on with TRY; it never carries a bug. Immutable values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

enum class Code { kIo, kCorrupt, kBudget, kUnsupported, kCancelled, kInvalid };

// What went wrong outside the program. `what` is one sentence that names the thing (file, tensor,
// offset) and the cure.
struct [[nodiscard]] Error {
  Code code;
  std::string what;
};

const char* code_name(Code code);

struct Ok {};

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status(Ok) {}                                          // NOLINT: implicit by design
  Status(Error error) : error_(std::move(error)) {}      // NOLINT
  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// A T or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}       // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}   // NOLINT
  bool ok() const { return state_.index() == 0; }
  const Error& error() const { return *std::get_if<1>(&state_); }
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

// Prints file:line and `text`, then aborts. For CHECK only.
[[noreturn]] void check_failed(const char* file, int line, const char* text);

}  // namespace sluice

#define SLUICE_CAT2(a, b) a##b
#define SLUICE_CAT(a, b) SLUICE_CAT2(a, b)

// TRY(auto x, f()): x is f()'s value, or the enclosing function returns f()'s error.
#define TRY(decl, expr) SLUICE_TRY(SLUICE_CAT(try_, __LINE__), decl, expr)
#define SLUICE_TRY(tmp, decl, expr)   \
  auto tmp = (expr);                  \
  if (!tmp.ok()) return tmp.error();  \
  decl = std::move(tmp).value()

// TRY_OK(f()): goes on if f() succeeded, or the enclosing function returns f()'s error.
#define TRY_OK(expr)                                        \
  do {                                                      \
    if (auto try_ok = (expr); !try_ok.ok()) return try_ok.error(); \
  } while (false)

// A broken invariant is a bug: abort, on in release.
#define CHECK(cond) \
  ((cond) ? static_cast<void>(0) : ::sluice::check_failed(__FILE__, __LINE__, #cond))

// CHECK inside kernels and hot loops: off in release.
#ifdef NDEBUG
#define DCHECK(cond) static_cast<void>(sizeof((cond)))
#else
#define DCHECK(cond) CHECK(cond)
#endif
