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

    var listenerCount: Int { 0 }
    var followerCount: Int { 0 }

    func groupBecameDurable(_ group: CommitGroup) {}
    func databaseWasDropped(_ database: DatabaseID) {}
    func rulesChanged(of database: Database) {}
}
