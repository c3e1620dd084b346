public import HatoModel

/// Whether pushes can carry a category.
public enum CategorySize {
    /// Bytes that are left for the title, the body and the data of the sender, each.
    private static let textBytes = 128
    /// As long as those of long uids.
    private static let replyBytes = 256

    /// Whether a push with the category is within the limit of every platform, with short texts.
    public static func fits(_ category: DeliveryContent.Category) -> Bool {
        let text = String(repeating: "x", count: textBytes)
        var content = DeliveryContent(
            notification: "ntf_0123456789abcdef", device: "", uid: "u", text: .init(title: text, body: text))
        content.data = ["x": text]
        content.appearance.category = category
        content.appearance.sound = "default"
        content.appearance.badge = 99_999
        content.hato.id = content.notification
        content.hato.reply = String(repeating: "x", count: replyBytes)
        return FCMRequest.fits(content) && APNsRequest.fits(content) && WebPushRequest.fits(content)
    }
}
