/// Blocks threads until an event has happened.
///
/// `@unchecked Sendable`: `isOpen` is guarded by `condition`.
package final class Latch: @unchecked Sendable {
    private let condition = ThreadCondition()
    private var isOpen = false

    package init() {}

    package func open() {
        condition.withLock {
            isOpen = true
            condition.broadcast()
        }
    }

    package func wait() {
        condition.withLock {
            while !isOpen { condition.wait() }
        }
    }
}
