import AsyncHTTPClient
import NIOCore

/// Runs tasks on the thread of one event loop of the HTTP clients: a task that makes requests changes its thread
/// neither for the request nor for its response, and no thread sleeps and wakes in between.
///
/// What runs here must not block, and what takes long keeps connections waiting.
public final class ClientLoop: TaskExecutor {
    private let loop: any EventLoop

    private init(_ loop: any EventLoop) { self.loop = loop }

    /// One of the loops, another one each time.
    public convenience init() { self.init(HTTPClient.defaultEventLoopGroup.next()) }

    /// One for each loop; there is at least one.
    public static var all: [ClientLoop] {
        HTTPClient.defaultEventLoopGroup.makeIterator().map { ClientLoop($0) }
    }

    /// Runs a job of a task on the loop.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
