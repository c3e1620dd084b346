import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `notifier.badges.…` and `notifier.withdraw`: what users have read, and what is taken back.
struct BadgeMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Badges.Get.self, in: &router) { methods, request, context in
            try await methods.badge(of: methods.user(context.caller, named: request.uid))
        }
        handle(Notifier.Badges.Set.self, in: &router) { methods, request, context in
            try await methods.set(request, of: methods.user(context.caller, named: request.uid), by: context.caller)
        }
        handle(Notifier.Withdraw.self, in: &router) { methods, request, _ in try await methods.withdraw(request) }
    }

    private func badge(of uid: String) async throws -> Notifier.Badges.Get.Result {
        try await store.read { snapshot in
            var result = Notifier.Badges.Get.Result(badge: 0, threads: [:])
            result.badge = try snapshot.readable(BadgeRecord.self, BadgeRecord.key(uid))?.shown ?? 0
            for row in try snapshot.rows(ThreadRecord.prefix(uid)) {
                guard let thread = ThreadRecord.thread(row.key),
                    let record = try? RecordCodec.decode(ThreadRecord.self, row.value, key: row.key.bytes)
                else { continue }
                result.threads[thread] = record.shown
            }
            return result
        }
    }

    private func set(
        _ request: Notifier.Badges.Set, of uid: String, by caller: Caller
    ) async throws -> Notifier.Badges.Set.Result {
        try checks.key(request.thread, "thread")
        let (thread, count) = (request.thread, request.count)
        guard thread != nil || count == 0 else {
            throw RPCError.invalidArgument(
                "count", reason: "invalid_count", "Without thread, count is 0: all threads are read")
        }
        guard (0...BadgeRecord.shownMax).contains(count) else {
            throw RPCError.invalidArgument("count", reason: "invalid_count", "count is from 0 to 99,999")
        }
        let badge = try await outbox.change { [authenticator = service.authenticator] draft in
            if case .user(let user) = caller, authenticator.hasEnded(user) { throw TokenError.revoked.rpcError }
            if let thread {
                try ThreadSteps.setCount(count, of: UserThread(uid: uid, thread: thread), in: &draft)
            } else {
                try ThreadSteps.readAll(of: uid, in: &draft)
            }
            return try draft.threads.badge(of: uid, draft.transaction)?.shown ?? 0
        }
        return .init(badge: badge)
    }

    private func withdraw(_ request: Notifier.Withdraw) async throws -> Notifier.Withdraw.Result {
        let outcome: Withdrawals.Outcome
        switch (request.notification, request.uid, request.thread) {
        case (let id?, nil, nil):
            try checks.key(id, "notification")
            outcome = try await service.withdrawals.withdraw(.notification(id)) { draft in
                guard try ThreadSteps.beginWithdrawal(of: id, in: &draft) else {
                    throw NotifierError.notificationNotFound(id)
                }
            }
        case (nil, let uid?, let thread?):
            try checks.key(uid, "uid", bytesMax: configuration.limits.uidBytesMax)
            try checks.key(thread, "thread")
            let job = WithdrawalJob.thread(uid: uid, thread: thread)
            outcome = try await service.withdrawals.withdraw(job) { draft in
                try ThreadSteps.withdraw(uid, thread, in: &draft)
            }
        default:
            throw RPCError.invalidArgument(
                "notification", reason: "invalid_choice", "Give either notification, or uid and thread")
        }
        return .init(dropped: outcome.dropped, devices: outcome.devices)
    }

    /// Whose badge is meant: the caller's; an administrator names the user.
    private func user(_ caller: Caller, named uid: String?) throws -> String {
        switch caller {
        case .administrator:
            guard let uid else {
                throw RPCError.invalidParams("uid", "The administrator key has no badge; say whose it is with uid")
            }
            try checks.key(uid, "uid", bytesMax: configuration.limits.uidBytesMax)
            return uid
        case .user(let user):
            guard uid == nil || uid == user.uid else { throw NotifierError.foreignUser }
            return user.uid
        case .nobody, .variable, .service: throw RPCError.missingCredential
        }
    }
}
