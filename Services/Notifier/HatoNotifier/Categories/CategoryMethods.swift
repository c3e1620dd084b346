import Crypto
import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import Synchronization

/// `notifier.categories.…`: the actions of notifications.
struct CategoryMethods: NotifierMethods {
    let service: NotifierService

    func add(to router: inout RPCRouter) {
        handle(Notifier.Categories.Set.self, in: &router) { methods, request, _ in
            try await methods.set(request.category.normalised)
        }
        handle(Notifier.Categories.List.self, in: &router) { methods, _, _ in
            .init(categories: try await methods.store.read { try $0.categories() })
        }
        handle(Notifier.Categories.Get.self, in: &router) { methods, request, _ in
            try methods.checks.key(request.etag, "etag")
            let list = try await methods.service.categories.list(methods.store)
            return .init(etag: list.etag, categories: request.etag == list.etag ? nil : list.categories)
        }
        handle(Notifier.Categories.Remove.self, in: &router) { methods, request, _ in
            try await methods.remove(request.id)
        }
    }

    private func set(_ category: Notifier.Category) async throws -> Notifier.Categories.Set.Result {
        try CategoryCheck(limits: configuration.limits).check(category)
        if service.effects == nil, category.actions.contains(where: { $0.effect?.needsKeys == true }) {
            throw NotifierError.noKeyForEffects
        }
        let receivers = try await receivers(of: category)
        let categoriesMax = configuration.limits.categoriesMax
        let (isNew, receiving) = try await outbox.change { draft in
            let (rows, key) = (draft.transaction, CategoryRecord.key(category.id))
            let former = try rows.category(category.id)
            if let former, former.isUsed, !former.category.differsOnlyInURLs(from: category) {
                throw NotifierError.categoryUsed(category.id)
            }
            if try !rows.contains(key), try rows.count(.category, upTo: categoriesMax) >= categoriesMax {
                throw NotifierError.tooManyCategories(categoriesMax)
            }
            var record = CategoryRecord(category: category)
            record.isUsed = former?.isUsed ?? false
            draft.writes.put(key, record)
            return (former?.isRemoved ?? true, try receivers.set(inPlaceOf: former, in: &draft))
        }
        service.categories.changed()
        for device in receiving.gone { await notices.dropDeliveries(of: device, outbox) }
        return .init(created: isNew, webhooks: receiving.shown.isEmpty ? nil : receiving.shown)
    }

    /// Those of a category that was checked. Throws `RPCError` that names the effect whose URL may not be called.
    private func receivers(of category: Notifier.Category) async throws -> ActionReceivers {
        for (index, action) in category.actions.enumerated() {
            guard let url = action.effect?.webhook else { continue }
            let parameter = "actions.\(index).effect.webhook"
            guard let channel = channels.first(where: { $0.platform == .webhook }) else {
                throw RPCError.invalidArgument(
                    parameter, reason: "unsupported_platform", "Webhooks are not served; take another effect")
            }
            do { _ = try await channel.check(.webhook(url: url, secrets: []), for: "") } catch {
                throw RPCError.invalidArgument(parameter, reason: error.reason, error.message)
            }
        }
        let now = configuration.time.now()
        return ActionReceivers(category) { url in
            DeviceRecord(
                receiver: url, named: outbox.newID("dev_"), at: now, WebhookSecret(random: configuration.random))
        }
    }

    private func remove(_ id: String) async throws -> Empty {
        let gone = try await outbox.change { draft -> [String] in
            guard var record = try draft.transaction.category(id), !record.isRemoved else {
                throw NotifierError.categoryNotFound(id)
            }
            if let owner = try draft.transaction.owner(ofCategory: id) {
                throw NotifierError.categoryInUse(id, owner: owner)
            }
            guard record.isUsed else {
                draft.writes.delete(CategoryRecord.key(id))
                return try ActionReceivers.remove(of: record.category, in: &draft)
            }
            record.isRemoved = true
            draft.writes.put(CategoryRecord.key(id), record)
            return []
        }
        service.categories.changed()
        for device in gone { await notices.dropDeliveries(of: device, outbox) }
        return Empty()
    }
}

/// The categories as apps get them, which anyone may ask for often: read once after each change.
final class CategoryList: Sendable {
    struct Content: Sendable {
        var etag: String
        var categories: [Notifier.Category]
    }

    private struct State {
        var content: Content?
        /// How often the categories changed: what was read before a change is not kept after it.
        var changes = 0
    }

    private let state = Mutex(State())

    /// After each commit that changes a category.
    func changed() {
        state.withLock { state in
            state.content = nil
            state.changes += 1
        }
    }

    func list(_ store: any Store) async throws -> Content {
        let (known, changes) = state.withLock { ($0.content, $0.changes) }
        if let known { return known }
        let categories = try await store.read { try $0.categories() }.map(\.withoutEffects)
        let digest = SHA256.hash(data: categories.json.encoded)
        let content = Content(etag: Base64.url.encode(digest.prefix(12)), categories: categories)
        state.withLock { state in
            if state.changes == changes { state.content = content }
        }
        return content
    }
}
