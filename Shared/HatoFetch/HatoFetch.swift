// Gets documents from addresses that users or administrators give, and nothing that only this machine can reach.
//
// Address/              what may be called: `StrictURL` reads an address strictly, `AddressGuard` decides where it may
//                       lead, and `HostResolver` looks names up.
// PinnedClients.swift   HTTP clients that connect to the very address that was checked; webhooks use them, too.
// ClientLoop.swift      runs tasks where the responses to their requests come.
// DocumentFetcher.swift one GET: a small document in a bounded time.
