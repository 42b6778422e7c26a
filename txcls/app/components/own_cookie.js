// Lets this browser find its visitor's files in every tab and at the address without their token. The cookie's path is that
// of the app. In a frame of another site, browsers keep only cookies that are partitioned by that site, over https.
export default function ({data}) {
  const attributes = location.protocol !== "https:" ? "SameSite=Lax"
    : window.parent === window ? "SameSite=Lax; Secure" : "SameSite=None; Secure; Partitioned";
  document.cookie = `${data.name}=${data.token}; Max-Age=${data.seconds}; ${attributes}`;
}
