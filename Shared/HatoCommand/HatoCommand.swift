public import HatoModel

/// Turns a request of the model into a subcommand (protocol §8).
///
/// An executable names its service once and lists its subcommands; `call`, `health` and `version` come from here:
/// ```swift
/// enum MessagesTarget: CommandTarget {
///     static let service = "messages"
///     static let port = 7702
///     static let methods = Messages.methods
/// }
///
/// @main struct HatoMessagesCommand: AsyncParsableCommand {
///     static let configuration = CommandConfiguration(
///         commandName: "hato-messages", abstract: "The message database",
///         subcommands: [
///             Serve.self, CallCommand<MessagesTarget>.self, HealthCommand<MessagesTarget>.self,
///             VersionCommand<MessagesTarget>.self, Get.self, Listen.self,
///         ])
/// }
/// ```
/// A command is a type that declares flags and makes a request; connection, credential, printing and exit code are
/// provided here:
/// ```swift
/// struct Get: RequestCommand {
///     typealias Target = MessagesTarget
///     static let configuration = CommandConfiguration(abstract: Messages.Get.summary)
///     @OptionGroup var options: ClientOptions
///     @Argument var path: String
///     func request() throws -> Messages.Get { Messages.Get(path: try TreePath(path)) }
/// }
///
/// struct Listen: StreamCommand {             // prints a line per event until it is interrupted
///     typealias Target = MessagesTarget
///     @OptionGroup var options: ClientOptions
///     @OptionGroup var stream: StreamOptions
///     @Argument var path: String
///     func request() throws -> Messages.Listen { Messages.Listen(path: try TreePath(path)) }
/// }
/// ```
/// A command with several calls runs inside `CommandSession.run(options, Target.self) { client, output in … }`.
/// `request()` throws an `ArgumentError`, a `ValidationError` or an `RPCError.invalid…` for wrong arguments. A
/// `table(_:)` makes the output of a command readable on a terminal; `--json` selects JSON.
public protocol CommandTarget: Sendable {
    /// The name on the wire: `messages`.
    static var service: String { get }
    /// The default port.
    static var port: Int { get }
    static var methods: [any RPCRequest.Type] { get }
}

extension CommandTarget {
    /// The name of the binary: `hato-messages`.
    public static var command: String { "hato-\(service)" }

    /// The environment variable with the service's address: one for each service, since their ports differ.
    static var serverVariable: String { "HATO_\(service.uppercased())_SERVER" }
}
