import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `notifier.topics.…`: users that are notified together.
struct TopicMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Topics.Subscribe.self, in: &router) { methods, request, context in
            try await methods.subscribe(request, context.caller)
        }
        handle(Notifier.Topics.Unsubscribe.self, in: &router) { methods, request, context in
            try await methods.unsubscribe(request, context.caller)
        }
        handle(Notifier.Topics.List.self, in: &router) { methods, request, context in
            try await methods.list(request, context.caller)
        }
    }

    private func subscribe(_ request: Notifier.Topics.Subscribe, _ caller: Caller) async throws -> Empty {
        let (topic, uid) = (request.topic, try owner(caller, named: request.uid))
        try checks.key(topic, "topic")
        let topicsMax = configuration.limits.topicsPerUserMax
        _ = try await store.write { [authenticator = service.authenticator] transaction in
            // Its user may have been deleted meanwhile: no event would remove the subscription any more.
            if case .user(let user) = caller, authenticator.hasEnded(user) { throw TokenError.revoked.rpcError }
            var changes = TopicChanges()
            guard try changes.subscribe(uid, to: topic, topicsMax: topicsMax, in: transaction) else {
                throw NotifierError.tooManyTopics(topicsMax)
            }
            try changes.writes.apply(to: transaction)
        }
        return Empty()
    }

    private func unsubscribe(_ request: Notifier.Topics.Unsubscribe, _ caller: Caller) async throws -> Empty {
        let (topic, uid) = (request.topic, try owner(caller, named: request.uid))
        try checks.key(topic, "topic")
        _ = try await store.write { transaction in
            var changes = TopicChanges()
            try changes.unsubscribe(uid, from: topic, in: transaction)
            try changes.writes.apply(to: transaction)
        }
        return Empty()
    }

    private func list(_ request: Notifier.Topics.List, _ caller: Caller) async throws -> Notifier.Topics.List.Result {
        let limit = try checks.page(request.limit)
        let after = request.after
        if let topic = request.topic {
            guard caller.isAdministrator else {
                throw RPCError.permissionDenied("Only administrators may list the users of a topic")
            }
            guard request.uid == nil else {
                throw RPCError.invalidParams("topic", "Give topic or uid, not both")
            }
            try checks.key(topic, "topic")
            try page(after, bytesMax: configuration.limits.uidBytesMax)
            return try await store.read { snapshot in
                let uids = try TopicReading(snapshot).users(of: topic, after: after, limit: limit)
                return .init(
                    topics: [Notifier.Topic(topic: topic, users: try TopicReading(snapshot).userCount(of: topic))],
                    uids: uids,
                    after: uids.count < limit ? nil : uids.last)
            }
        }
        try page(after, bytesMax: configuration.limits.keyBytesMax)
        if caller.isAdministrator, request.uid == nil {
            return try await store.read { snapshot in
                let topics = try TopicReading(snapshot).topics(after: after, limit: limit)
                return .init(topics: topics, after: topics.count < limit ? nil : topics.last?.topic)
            }
        }
        let uid = try owner(caller, named: request.uid)
        return try await store.read { snapshot in
            let topics = try TopicReading(snapshot).topics(of: uid, after: after, limit: limit)
            return .init(
                topics: topics.map { Notifier.Topic(topic: $0) }, after: topics.count < limit ? nil : topics.last)
        }
    }

    /// Whose topics are meant: the caller's; an administrator names the user.
    private func owner(_ caller: Caller, named uid: String?) throws -> String {
        switch caller {
        case .administrator:
            guard let uid else {
                throw RPCError.invalidParams(
                    "uid", "The administrator key has no topics of its own; name a user with uid")
            }
            try checks.key(uid, "uid", bytesMax: configuration.limits.uidBytesMax)
            return uid
        case .user(let user):
            guard uid == nil || uid == user.uid else { throw NotifierError.foreignUser }
            return user.uid
        case .nobody, .variable, .service: throw RPCError.missingCredential
        }
    }

    /// What ended a page is a name.
    private func page(_ after: String?, bytesMax: Int) throws(RPCError) {
        guard let after else { return }
        do { try checks.key(after, "after", bytesMax: bytesMax) } catch {
            throw .invalidArgument(
                "after", reason: "invalid_page", "'after' must be the after of the previous page, e.g. \"news\"")
        }
    }
}
