import HatoModel

/// `--only`: prints one member of a result alone.
enum RequestedMember {
    /// Throws `CommandFailure` for a member that no result of the method has: a call that writes must not run if its
    /// result cannot be shown. A method whose results have no declared members is accepted.
    static func check<Request: RPCRequest>(_ member: String?, of type: Request.Type) throws(CommandFailure) {
        guard let member else { return }
        let schema = Request.Result.schema
        guard schema["type"] != "array" else {
            throw CommandFailure(.usage, "--only \(member): the result of \(type.method) is a list and has no members")
        }
        guard schema["additionalProperties"] == false, let properties = schema["properties"]?.object,
            properties[member] == nil
        else { return }
        let names = properties.isEmpty ? "none" : properties.members.map(\.name).joined(separator: ", ")
        throw CommandFailure(
            .usage, "--only \(member): the result of \(type.method) has no such member; it has: \(names)")
    }
}
