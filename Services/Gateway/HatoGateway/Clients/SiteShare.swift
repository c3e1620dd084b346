import HatoRPC

/// What the site of an IPv6 address, its /48, may take at most.
enum SiteShare {
    /// `AddressLoad.siteFactor` times what an address may take, and never so much of the whole that others get nothing.
    static func max(_ perAddressMax: Int, of all: Int) -> Int {
        let (product, overflows) = perAddressMax.multipliedReportingOverflow(by: AddressLoad.siteFactor)
        let share = overflows ? Int.max / 2 : product
        return Swift.max(perAddressMax, min(share, all - all / 4))
    }
}

extension ClientAddress {
    /// The site; nil where it is the address itself.
    var ownSite: String? { site == network ? nil : site }
}
