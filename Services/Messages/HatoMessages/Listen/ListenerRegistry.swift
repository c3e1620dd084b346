import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// Everything that listens or follows. Lives on the publisher's thread.
final class ListenerRegistry {
    private let parts: ServiceParts
    private let post: Publisher.Post

    init(_ parts: ServiceParts, post: @escaping Publisher.Post) {
        self.parts = parts
        self.post = post
    }

    func groupBecameDurable(_ group: CommitGroup) {}
}
