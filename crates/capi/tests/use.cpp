// What overspin::mutex promises beyond what the example shows. Exits with the line of the first check that fails.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <overspin.hpp>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                               \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (false)

static_assert(!std::is_copy_constructible_v<overspin::mutex> && !std::is_move_constructible_v<overspin::mutex>);
static_assert(std::is_default_constructible_v<overspin::mutex>);
static_assert(noexcept(std::declval<overspin::mutex &>().unlock()));

int main(int argc, char **) {
    overspin::mutex mutex;
    // With an argument: a release by a thread that does not hold the mutex.
    if (argc > 1) mutex.unlock();
    CHECK(overspin_mutex_trylock(mutex.native_handle()) == OVERSPIN_OK);
    bool taken = true;
    std::thread([&] { taken = mutex.try_lock(); }).join();
    CHECK(!taken);
    try {
        mutex.lock();
        CHECK(!"locked twice");
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::resource_deadlock_would_occur);
    }
    mutex.unlock();
    {
        std::unique_lock hold(mutex, std::try_to_lock);
        CHECK(hold.owns_lock());
    }
    // A time limit: the wait ends with the mutex held.
    std::condition_variable_any never;
    {
        std::unique_lock hold(mutex);
        CHECK(never.wait_for(hold, std::chrono::milliseconds(1)) == std::cv_status::timeout);
        CHECK(hold.owns_lock() && !mutex.try_lock());
    }
    for (const char *name : {static_cast<const char *>(nullptr), "tiket"}) {
        try {
            overspin::mutex none(name);
            CHECK(!"there is such a lock");
        } catch (const std::invalid_argument &error) {
            CHECK(std::string(error.what()).find(" malthusian") != std::string::npos);
        }
    }
    return 0;
}
