import Foundation
import HatoRPC
import Testing

@testable import HatoRuntime

struct DataFolderTests {
    private func verdict(owner: UInt32, _ mode: UInt32) -> DataFolderAccess.Verdict {
        DataFolderAccess(owner: owner, mode: mode).verdict(for: 10_001, "/data")
    }

    @Test func folderOfTheServicesUserAloneIsSafe() {
        #expect(verdict(owner: 10_001, 0o40_700) == .safe)
    }

    @Test func folderOfAnotherUserIsRefusedNamingBothUsers() {
        let expected =
            "/data belongs to user 0, but the service runs as user 10001; give a folder below it, which the "
            + "service makes, such as /data/hato, or run: chown 10001 /data"
        #expect(verdict(owner: 0, 0o700) == .refused(expected))
    }

    @Test(arguments: [0o777, 0o770, 0o702] as [UInt32])
    func folderThatOthersMayWriteIsRefused(mode: UInt32) {
        let expected =
            "other users may write in /data (mode 0\(String(mode, radix: 8))); give a folder below it, which "
            + "the service makes, such as /data/hato, or run: chmod 700 /data"
        #expect(verdict(owner: 10_001, mode) == .refused(expected))
    }

    @Test func folderThatOthersMayListCausesAWarning() {
        let expected = "setting data: other users may list /data (mode 0755); run: chmod 700 /data"
        #expect(verdict(owner: 10_001, 0o755) == .warning(expected))
    }

    @Test func folderWithAStoreIsNotReplacedByAnother() {
        let access = DataFolderAccess(owner: 0, mode: 0o700)
        let expected = "/data belongs to user 0, but the service runs as user 10001; run: chown 10001 /data"
        #expect(access.verdict(for: 10_001, "/data", holdsStore: true) == .refused(expected))
    }

    @Test func storeOfAnEarlierVersionAboveIsRefused() throws {
        let above = NSTemporaryDirectory() + "hato-data-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: above) }
        let path = "\(above)/auth"
        try DataFolder.refuseStoreAbove(path)
        try FileManager.default.createDirectory(atPath: "\(above)/store/rocksdb", withIntermediateDirectories: true)
        let error = #expect(throws: SettingsError.self) { try DataFolder.refuseStoreAbove(path) }
        let text = try #require(error).description
        #expect(text.hasPrefix("setting data: \(path) has no store, but \(above)/store is the store"), "\(text)")
        let command = "run: mkdir -p -m 700 '\(path)' && mv '\(above)/store' '\(path)/'"
        #expect(text.hasSuffix(command), "\(text)")
        try FileManager.default.createDirectory(atPath: "\(path)/store", withIntermediateDirectories: true)
        try DataFolder.refuseStoreAbove(path)
    }

    @Test func foldersAreMadeForTheirUserAlone() throws {
        let above = NSTemporaryDirectory() + "hato-data-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: above) }
        #expect(try DataFolder.make("\(above)/data") == nil)
        for path in [above, "\(above)/data"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700, "\(path)")
        }
    }

    @Test func openFolderIsRefusedAndKeepsItsMode() throws {
        let path = NSTemporaryDirectory() + "hato-data-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
        let error = #expect(throws: SettingsError.self) { try DataFolder.make(path) }
        let text = try #require(error).description
        #expect(text.hasPrefix("setting data: other users may write in \(path) (mode 0777); "), "\(text)")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o777)
    }
}
