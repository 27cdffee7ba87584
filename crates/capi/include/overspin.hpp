// Overspin's locks for programs in C++17: a mutex that std::lock_guard, std::unique_lock, std::scoped_lock and
// std::condition_variable_any accept.
//
//     overspin::mutex turn;                      // "mutex": for general use
//     overspin::mutex measured("malthusian");    // any name of `overspin list locks`
//     std::lock_guard hold(turn);
//
// The whole file is in this header; link with -loverspin. overspin.h says what a mutex promises and what it does not
// notice. Not std::condition_variable: it accepts std::mutex only.
#ifndef OVERSPIN_HPP
#define OVERSPIN_HPP

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

#include <overspin.h>

namespace overspin {

// Meets the standard's requirements Mutex, and so Lockable.
class mutex {
public:
    // Throws std::invalid_argument if there is no lock of that name; its what() lists the names that there are.
    explicit mutex(const char *name = "mutex") {
        const int error = overspin_mutex_init(&handle_, name);
        if (error == OVERSPIN_OK) return;
        std::string what = std::string(name ? name : "(null)") + ": " + overspin_strerror(error) + "; locks are:";
        for (std::size_t i = 0; i < overspin_lock_count(); i++) what += std::string(" ") + overspin_lock_name(i);
        throw std::invalid_argument(what);
    }

    explicit mutex(const std::string &name) : mutex(name.c_str()) {}

    // Aborts the program if the mutex is held: the holder would go on with memory that is no mutex any more.
    ~mutex() { must(overspin_mutex_destroy(handle_), "destroy"); }

    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;

    // Throws std::system_error: resource_deadlock_would_occur if this thread holds the mutex already,
    // resource_unavailable_try_again if more threads use locks than this lock serves.
    void lock() { may(overspin_mutex_lock(handle_), "lock"); }

    // Returns false if the mutex is held, by whichever thread. Throws as lock() does for too many threads.
    bool try_lock() {
        const int error = overspin_mutex_trylock(handle_);
        if (error == OVERSPIN_BUSY) return false;
        may(error, "try_lock");
        return true;
    }

    // Aborts the program if this thread does not hold the mutex: guards call it in destructors, where nothing can
    // catch an exception.
    void unlock() noexcept { must(overspin_mutex_unlock(handle_), "unlock"); }

    using native_handle_type = overspin_mutex_t *;

    // For the functions of overspin.h. The mutex keeps it.
    native_handle_type native_handle() noexcept { return handle_; }

private:
    static void may(int error, const char *function) {
        if (error == OVERSPIN_OK) return;
        const std::errc code = error == OVERSPIN_DEADLOCK  ? std::errc::resource_deadlock_would_occur
                               : error == OVERSPIN_THREADS ? std::errc::resource_unavailable_try_again
                                                           : std::errc::invalid_argument;
        throw std::system_error(std::make_error_code(code),
                                std::string("overspin::mutex::") + function + ": " + overspin_strerror(error));
    }

    static void must(int error, const char *function) noexcept {
        if (error == OVERSPIN_OK) return;
        std::fprintf(stderr, "overspin::mutex: %s: %s\n", function, overspin_strerror(error));
        std::abort();
    }

    overspin_mutex_t *handle_ = nullptr;
};

} // namespace overspin

#endif
