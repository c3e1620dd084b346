import HatoModel

/// The credentials of an emulator as services take them (spec auth §8): `owner` is the administrator, an unsigned token
/// is its user. Others are passed on as they are.
extension RESTIdentity {
    /// - Parameter administratorKey: what services take for `owner`.
    public func emulated(_ administratorKey: String) -> RESTIdentity {
        guard let credential = auth.flatMap({ EmulatorCredential($0) }) else { return self }
        var identity = self
        identity.auth = administratorKey
        if case .user(let token) = credential { identity.as = token.identity.encoded }
        return identity
    }
}

extension SessionCredential {
    /// The params of `session.authenticate`, in one line.
    ///
    /// - Parameter administratorKey: what services take for `owner`.
    public func emulatedParams(_ administratorKey: String) -> [UInt8] {
        switch EmulatorCredential(text) {
        case nil: params()
        case .owner: params(auth: administratorKey)
        case .user(let token):
            JSONValue.object(["auth": .string(administratorKey), "as": token.identity]).encoded
        }
    }
}

extension UnsignedToken {
    /// The user as whom an administrator calls: `as`.
    var identity: JSONValue { ["uid": .string(uid), "token": .object(claims)] }

    /// The same for the service of accounts, which ends tokens by their time: SDKs write 0 where a test names none.
    var timelessIdentity: JSONValue {
        guard claims["iat"] == 0 else { return identity }
        let claims = JSONObject(uniqueMembers: claims.members.filter { $0.name != "iat" })
        return ["uid": .string(uid), "token": .object(claims)]
    }
}
