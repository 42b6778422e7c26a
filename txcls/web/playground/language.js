// The page's data, and its language. Imported before the other modules, whose texts are translated as they are read.

import {openLanguage} from "../picture/language.js";
import {settingsInAddress} from "./frame.js";

export const page = JSON.parse(document.getElementById("page-data").textContent);
await openLanguage(page, new URLSearchParams(settingsInAddress()).get("lang"));
