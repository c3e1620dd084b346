#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A mutex with a condition variable, for threads that sleep until there is work.
///
/// `@unchecked Sendable`: both are allocated separately and never moved, and the operating system guards them.
package final class ThreadCondition: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let variable = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(variable, nil)
    }

    deinit {
        pthread_cond_destroy(variable)
        pthread_mutex_destroy(mutex)
        variable.deallocate()
        mutex.deallocate()
    }

    package func withLock<Result: ~Copyable>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Sleeps until `signal`; call it inside `withLock` only, and in a loop until the awaited condition holds.
    package func wait() { pthread_cond_wait(variable, mutex) }
    package func signal() { pthread_cond_signal(variable) }
    package func broadcast() { pthread_cond_broadcast(variable) }
}

/// Starts a detached thread; it ends with `body`.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(StoreError) {
    final class Start: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    // A transaction may walk a deep tree, so the stack is as large as a main thread's.
    pthread_attr_setstacksize(&attributes, 8 << 20)
    let start = Unmanaged.passRetained(Start(body))
    #if canImport(Darwin)
        var thread: pthread_t?
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, start.toOpaque())
    #else
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { argument in
                if let argument { Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body() }
                return nil
            }, start.toOpaque())
    #endif
    guard code == 0 else {
        start.release()
        throw .io("no thread could be started: \(String(cString: strerror(code)))")
    }
}
