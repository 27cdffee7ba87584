// std::mutex and std::condition_variable: threads pass a baton round. Mutexes come and go without a destructor
// call that the C library could see.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

int main() {
    constexpr int threads = 4, rounds = 50;
    std::mutex mutex;
    std::condition_variable turn;
    int baton = 0;
    long visits = 0;
    std::vector<std::thread> all;
    for (int me = 0; me < threads; me++) {
        all.emplace_back([&, me] {
            for (int i = 0; i < rounds; i++) {
                std::unique_lock<std::mutex> lock(mutex);
                while (!turn.wait_for(lock, std::chrono::seconds(1),
                                      [&] { return baton % threads == me; })) {
                }
                baton++;
                visits++;
                turn.notify_all();
            }
        });
    }
    for (auto &thread : all) thread.join();
    for (int i = 0; i < 10000; i++) {
        auto *held = new std::mutex;
        { std::lock_guard<std::mutex> guard(*held); visits++; }
        delete held;
    }
    std::recursive_timed_mutex timed;
    if (!timed.try_lock_for(std::chrono::seconds(1))) return 1;
    if (!timed.try_lock_for(std::chrono::seconds(1))) return 1;
    std::thread([&] {
        if (timed.try_lock_for(std::chrono::milliseconds(5))) std::abort();
    }).join();
    timed.unlock();
    timed.unlock();
    std::printf("%ld visits, baton %d\n", visits, baton);
}
