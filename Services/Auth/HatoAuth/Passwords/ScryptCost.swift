/// The cost of one password hash (RFC 7914): memory 128·N·r bytes, time N·r·p.
///
/// The default is OWASP's N = 2^14, r = 8, p = 5: 16 MiB and 102 ms here; N = 2^17, p = 1, equally strong, takes 128
/// MiB and 232 ms.
public struct ScryptCost: Sendable, Hashable {
    /// Log₂ of N.
    public var logN: Int
    /// The block size. BoringSSL's own memory limit refuses r > 16 with p = 1: keep 8.
    public var r: Int
    /// The parallelism (RFC 7914 §2).
    public var p: Int

    public init(logN: Int = 14, r: Int = 8, p: Int = 5) {
        self.logN = logN
        self.r = r
        self.p = p
    }

    /// The memory of one hash in bytes while it is computed.
    public var memoryBytes: Int { 128 * (1 << logN) * r }

    /// The work of one hash, for comparing costs.
    var work: Int { (1 << logN) * r * p }

    /// The costs that are ever computed: a damaged or malicious record must not allocate gigabytes.
    var isReasonable: Bool { (1...20).contains(logN) && (1...16).contains(r) && (1...16).contains(p) }
}
