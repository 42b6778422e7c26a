// The page's data, and its language. Imported before the other modules, whose texts are translated as they are read.

import {openLanguage} from "../picture/language.js";
import {settingsInAddress} from "./frame.js";

export const page = JSON.parse(document.getElementById("page-data").textContent);
export const askedLanguage = new URLSearchParams(settingsInAddress()).get("lang");
await openLanguage(page, askedLanguage);
