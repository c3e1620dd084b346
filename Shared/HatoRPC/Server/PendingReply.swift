import HatoModel

/// A request that waits for its answer; made when it is read, answered once.
final class PendingReply: Sendable {
    func succeed(_ write: (inout JSONWriter) throws -> Void) {}
    func succeed(_ result: EncodedJSON) {}
    func fail(_ error: any Error) {}
}
