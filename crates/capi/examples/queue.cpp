// A bounded queue and two accounts, under a lock that is chosen on the command line:
//
//     c++ -std=c++17 queue.cpp $(pkg-config --cflags --libs overspin) -pthread -o queue && ./queue malthusian
//
// Nothing here is special to Overspin but the type of the mutex.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <overspin.hpp>

constexpr int WORKERS = 2;          // producers, and as many consumers
constexpr int ITEMS = 500;          // of each producer
constexpr std::size_t CAPACITY = 8; // small, so that producers wait, too

// Producers wait while the queue is full, consumers while it is empty.
template <class T, class Mutex = overspin::mutex>
class BoundedQueue {
public:
    BoundedQueue(const std::string &lock, std::size_t capacity) : mutex_(lock), capacity_(capacity) {}

    void push(T item) {
        {
            std::unique_lock hold(mutex_);
            not_full_.wait(hold, [&] { return items_.size() < capacity_; });
            items_.push_back(std::move(item));
        }
        not_empty_.notify_one();
    }

    T pop() {
        std::unique_lock hold(mutex_);
        not_empty_.wait(hold, [&] { return !items_.empty(); });
        T item = std::move(items_.front());
        items_.pop_front();
        hold.unlock();
        not_full_.notify_one();
        return item;
    }

private:
    Mutex mutex_;
    std::condition_variable_any not_empty_, not_full_;
    std::deque<T> items_;
    const std::size_t capacity_;
};

struct Account {
    explicit Account(const std::string &lock) : mutex(lock) {}
    overspin::mutex mutex;
    long balance = 0;
};

// std::scoped_lock takes both locks without a deadlock, in whichever order two threads name them.
void transfer(Account &from, Account &to, long amount) {
    std::scoped_lock hold(from.mutex, to.mutex);
    from.balance -= amount;
    to.balance += amount;
}

int run(const std::string &lock) {
    BoundedQueue<long> queue(lock, CAPACITY);
    Account left(lock), right(lock);
    std::vector<std::thread> threads;
    for (int worker = 0; worker < WORKERS; worker++) {
        threads.emplace_back([&] {
            for (long item = 1; item <= ITEMS; item++) queue.push(item);
        });
        // One consumer names the accounts in one order, the other in the other.
        threads.emplace_back([&, worker] {
            Account &from = worker % 2 ? right : left, &to = worker % 2 ? left : right;
            for (int i = 0; i < ITEMS; i++) transfer(from, to, queue.pop());
        });
    }
    for (std::thread &thread : threads) thread.join();

    std::lock_guard hold(left.mutex);
    std::cout << lock << ": " << WORKERS * ITEMS << " items, the accounts balance to " << left.balance + right.balance
              << "\n";
    return left.balance + right.balance == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    try {
        return run(argc > 1 ? argv[1] : "mutex");
    } catch (const std::invalid_argument &no_lock) {
        std::cerr << no_lock.what() << "\n";
        return 2;
    }
}
