import CArgon2

/// Argon2 (RFC 9106) by the reference library: the parameters of a hash `$argon2id$v=19$m=65536,t=3,p=4$salt$hash`.
struct Argon2: Sendable, Hashable {
    enum Kind: String, Sendable, CaseIterable {
        case id = "argon2id"
        case i = "argon2i"
    }

    /// The library has refused the parameters, or there is too little memory.
    struct Failure: Error {
        var code: Int32
    }

    var kind: Kind
    /// 16 or 19.
    var version: Int
    var memoryKiB: Int
    var passes: Int
    var lanes: Int

    /// All lanes are computed on the thread of the caller.
    func derive(_ password: [UInt8], _ salt: [UInt8], byteCount: Int) throws -> [UInt8] {
        var (password, salt) = (password, salt)
        var hash = [UInt8](repeating: 0, count: byteCount)
        let code = password.withUnsafeMutableBufferPointer { password in
            salt.withUnsafeMutableBufferPointer { salt in
                hash.withUnsafeMutableBufferPointer { hash in
                    var context = context()
                    (context.pwd, context.pwdlen) = (password.baseAddress, UInt32(clamping: password.count))
                    (context.salt, context.saltlen) = (salt.baseAddress, UInt32(clamping: salt.count))
                    (context.out, context.outlen) = (hash.baseAddress, UInt32(clamping: hash.count))
                    return argon2_ctx(&context, kind == .id ? Argon2_id : Argon2_i)
                }
            }
        }
        guard code == ARGON2_OK.rawValue else { throw Failure(code: code) }
        return hash
    }

    private func context() -> Argon2_Context {
        var context = Argon2_Context()
        context.version = UInt32(clamping: version)
        context.m_cost = UInt32(clamping: memoryKiB)
        context.t_cost = UInt32(clamping: passes)
        context.lanes = UInt32(clamping: lanes)
        context.threads = 1
        return context
    }
}
