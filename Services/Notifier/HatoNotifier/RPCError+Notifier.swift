public import HatoFetch
public import HatoModel
import HatoPush
import HatoStorage

/// What this service says no with, besides what its rooms do; with `OutboxRefusal` and `AddressRefusal` the table of
/// its errors on the wire (protocol §3).
enum NotifierError: Error, Sendable, Hashable {
    case deviceNotFound(String)
    case uidMissing
    case foreignUser
    case noSecret(String)
    case appNotConfigured(String, Notifier.Platform)
    case appNotFound(String)
    case triggerNotFound(String)
    case tooManyTriggers(Int)
    case typeNotFound(String)
    case tooManyTypes(Int)
    case typeInUse(String, trigger: String, why: String?)
    case notificationNotFound(String)
    case deliveryNotFound(String)
    case noFeed
    case tooManyMutes(Int)
    case unknownCategory(String)
    case categoryNotFound(String)
    case categoryUsed(String)
    case categoryInUse(String, owner: String)
    case tooManyCategories(Int)
    case noKeyForEffects
    case tooManyTopics(Int)
    case emailNotVerified(String)
}

extension NotifierError: RPCErrorConvertible {
    /// How to set a category that comes along.
    private static func shipped(_ id: String) -> String {
        let name = ShippedCategories.allCases.first { (try? $0.request().id) == id }?.rawValue
        return name.map { " (hato-notifier categories set --shipped \($0))" } ?? ""
    }

    var rpcError: RPCError {
        switch self {
        case .deviceNotFound(let device): .notFound(reason: "device_not_found", "There is no device \"\(device)\"")
        case .uidMissing:
            .invalidParams("uid", "The administrator key has no devices of its own; say whose they are with uid")
        case .foreignUser: .permissionDenied("Only administrators may name another user")
        case .noSecret(let device):
            .failedPrecondition(reason: "no_secret", "The device \"\(device)\" is no webhook: it has no signing secret")
        case .appNotConfigured(let app, let platform):
            .failedPrecondition(
                reason: "app_not_configured",
                "The app \"\(app)\" has no credentials for \(platform.rawValue); give them in the setting apps-file")
        case .appNotFound(let app):
            .notFound(reason: "app_not_found", "There is no app \"\(app)\" in the setting apps-file")
        case .triggerNotFound(let id): .notFound(reason: "trigger_not_found", "There is no trigger \"\(id)\"")
        case .tooManyTriggers(let max):
            .resourceExhausted(reason: "too_many_triggers", "There are \(max) triggers, which is the limit")
        case .typeNotFound(let type): .notFound(reason: "type_not_found", "There is no type \"\(type)\"")
        case .tooManyTypes(let max):
            .resourceExhausted(reason: "too_many_types", "There are \(max) types, which is the limit")
        case .typeInUse(let type, let trigger, let why):
            .failedPrecondition(
                reason: "type_in_use",
                "The trigger \"\(trigger)\" has the type \"\(type)\"" + (why.map { ": \($0)" } ?? "; remove it first"))
        case .notificationNotFound(let id):
            .notFound(reason: "notification_not_found", "There is no notification \"\(id)\", or it is no longer kept")
        case .deliveryNotFound(let id):
            .notFound(reason: "delivery_not_found", "There is no delivery \"\(id)\", or it is no longer kept")
        case .noFeed:
            .failedPrecondition(
                reason: "no_service_key",
                "Triggers need a key for messages; start the notifier with --outgoing-key-file")
        case .tooManyMutes(let max):
            .resourceExhausted(reason: "too_many_mutes", "A user mutes at most \(max) threads; unmute others first")
        case .unknownCategory(let id):
            .invalidArgument(
                "category", reason: "unknown_category",
                "There is no category \"\(id)\"\(Self.shipped(id)); notifier.categories.set makes one")
        case .categoryNotFound(let id):
            .notFound(reason: "category_not_found", "There is no category \"\(id)\"")
        case .categoryUsed(let id):
            .failedPrecondition(
                reason: "category_used",
                "Notifications with the category \"\(id)\" are on devices, so its actions stay as they are, except URLs "
                    + "of webhooks; take a new id")
        case .categoryInUse(let id, let owner):
            .failedPrecondition(
                reason: "category_in_use", "\(owner) has the category \"\(id)\"; take it away there first")
        case .tooManyCategories(let max):
            .resourceExhausted(
                reason: "too_many_categories",
                "There are \(max) categories, which is the limit; those that were used stay when they are removed")
        case .noKeyForEffects:
            .failedPrecondition(
                reason: "no_service_key",
                "Effects and quick replies need a key for messages and auth; start the notifier with "
                    + "--outgoing-key-file")
        case .tooManyTopics(let max):
            .resourceExhausted(reason: "too_many_topics", "The user has \(max) topics, which is the limit")
        case .emailNotVerified(let why): .failedPrecondition(reason: "email_not_verified", why)
        }
    }
}

extension OutboxRefusal: RPCErrorConvertible {
    var rpcError: RPCError {
        switch self {
        case .unknownDevice(let device): NotifierError.deviceNotFound(device).rpcError
        case .disabledDevice(let device):
            .failedPrecondition(
                reason: "device_disabled",
                "The device \"\(device)\" is disabled; its owner makes it active by registering again")
        case .tooManyFanOuts(let max):
            .resourceExhausted(
                reason: "too_many_fan_outs",
                "Deliveries of \(max) notifications are still being made, which is the limit; try again later")
        case .idempotencyKeyReused:
            .alreadyExists(
                reason: "idempotency_key_reused",
                "This idempotencyKey was used for another notification within 24 hours")
        case .cursorMoved: .unavailable(reason: "busy", "The triggers are being changed; try again")
        }
    }
}

extension AddressRefusal: RPCErrorConvertible {
    public var rpcError: RPCError { .invalidArgument("url", reason: reason, message) }
}

extension StoreError {
    /// A store that has closed is an outage; what else it says is for the log.
    ///
    /// - Parameter isIdempotent: of the request that is refused.
    func asRPCError(isIdempotent: Bool) -> RPCError {
        switch self {
        case .closed: .storeClosed
        case .outcomeUnknown: .outcomeUnknown(isIdempotent: isIdempotent)
        default: .internalError
        }
    }
}
