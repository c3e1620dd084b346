import HatoFirebase
import HatoModel
import HatoRPC
import NIOCore

/// The services, as one event loop reaches them.
final class Upstream {
    let links: ServiceLinks
    /// A connection of its own for each session and event stream.
    var messages: ServiceLink { links.messages }
    private let limits: GatewayLimits
    /// For single calls of messages.
    private let sharedMessages: SharedWires
    /// For those with much to send: what comes behind one of them on its connection waits.
    private let largeCalls: SharedWires
    /// For those that concern rules and databases, which may take long.
    private let administration: SharedWires
    private let sharedNotifier: SharedWires?
    /// For calls of auth; nil where no accounts are served.
    let sharedAuth: SharedWires?
    /// For those of auth behind which others would wait (`NativeCall.holdsOthers`).
    let slowAuth: SharedWires?
    private let namespaces: EmulatorNamespaces?

    init(_ links: ServiceLinks, on loop: any EventLoop, _ configuration: GatewayConfiguration) {
        let limits = configuration.limits
        (self.links, self.limits) = (links, limits)
        // A service that is away keeps no bytes from the calls of others.
        let waiting = HeldBytes(max: limits.messagesCallBytesMax)
        func wires(_ link: ServiceLink, max: Int, _ waiting: HeldBytes) -> SharedWires {
            SharedWires(link, on: loop, max: max, limits, waiting)
        }
        func ownBytes() -> HeldBytes { HeldBytes(max: limits.callBytesMax / 4) }
        sharedMessages = wires(links.messages, max: limits.sharedWiresMax, waiting)
        largeCalls = wires(links.messages, max: limits.largeCallWiresMax, waiting)
        administration = wires(links.messages, max: 1, waiting)
        sharedNotifier = links.notifier.map { wires($0, max: limits.sharedWiresMax, ownBytes()) }
        // Auth responds on a connection to one call after the other.
        let share = max(1, limits.authWiresMax / max(1, configuration.loops))
        let slowShare = share / 4 + (share > 1 && share < 4 ? 1 : 0)
        let auth = configuration.accounts == nil ? nil : links.auth
        let ofAuth = HeldBytes(max: limits.authCallBytesMax)
        sharedAuth = auth.map { wires($0, max: share - slowShare, ofAuth) }
        slowAuth = slowShare == 0 ? sharedAuth : auth.map { wires($0, max: slowShare, ofAuth) }
        namespaces = configuration.emulator.map { [administration] emulator in
            EmulatorNamespaces(emulator.administratorKey, administration)
        }
    }

    /// The connections to all services that are open, of all event loops.
    var openWires: Int {
        [links.messages, links.auth, links.notifier].reduce(0) { $0 + ($1?.openWires.count ?? 0) }
    }

    /// Those of each service, by its name.
    var shared: [(service: String, wires: SharedWires)] {
        [("messages", sharedMessages), ("auth", sharedAuth), ("notifier", sharedNotifier)]
            .compactMap { service, wires in wires.map { (service, $0) } }
    }

    /// Calls `then` when the database of a namespace may be used: an emulator makes it.
    func prepare(_ database: DatabaseName, then: @escaping () -> Void) {
        guard let namespaces else { return then() }
        namespaces.prepare(database, then: then)
    }

    /// Calls messages, over a connection that is shared; `completion` is called once, on this event loop.
    func callMessages(_ method: String, _ params: [UInt8], _ completion: @escaping SharedWires.Completion) {
        if method.hasPrefix("messages.rules.") || method.hasPrefix("messages.databases.") {
            administration.call(method, params, completion)
        } else if params.count > limits.largeCallBytesMin {
            largeCalls.call(method, params, completion)
        } else {
            sharedMessages.call(method, params, completion)
        }
    }

    /// The same for the notifier; false, without a call, when there is none.
    func callNotifier(_ method: String, _ params: [UInt8], _ completion: @escaping SharedWires.Completion) -> Bool {
        sharedNotifier?.call(method, params, completion) != nil
    }

    func close() {
        for wires in [sharedMessages, largeCalls, administration] { wires.close() }
        sharedNotifier?.close()
        sharedAuth?.close()
        slowAuth?.close()
    }
}
